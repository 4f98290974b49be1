"""Addresses under /listen/."""

from django.urls import path

from listening import views, views_path

app_name = "listening"
urlpatterns = [
    path("", views_path.home, name="home"),
    path("go/<str:token>/", views_path.welcome, name="welcome"),
    path("on/<str:token>/", views_path.resume, name="resume"),
    path("language", views_path.language, name="language"),
    path("check/", views_path.check, name="check"),
    path("check/sound", views_path.check_sound, name="check_sound"),
    path("words/", views_path.words, name="words"),
    path("words/<int:pk>", views_path.word_sound, name="word_sound"),
    path("test/", views.test, name="test"),
    path("next", views.following, name="next"),
    path("ahead", views.ahead, name="ahead"),
    path("sound/<str:key>", views.sound, name="sound"),
    path("voice/<str:key>", views.voice, name="voice"),
    path("vote", views.vote, name="vote"),
    path("undo", views.undo, name="undo"),
    path("undeliverable", views.undeliverable, name="undeliverable"),
    path("rested", views.rested, name="rested"),
    path("elsewhere", views_path.elsewhere, name="elsewhere"),
    path("thanks/", views_path.thanks, name="thanks"),
    path("erase/", views_path.erase, name="erase"),
]
